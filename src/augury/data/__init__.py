"""Data sets: the record, readers, named sets, variants with a planted truth, toy problems."""
