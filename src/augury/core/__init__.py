"""Errors, random numbers, units and atomic file writes; imports nothing else of Augury."""
