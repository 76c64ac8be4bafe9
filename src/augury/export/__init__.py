"""What was learned, for use elsewhere: the policy in the words of other libraries, the model as a program."""
