"""What was learned, for use elsewhere: the policy as code for other libraries, the model as a program."""
