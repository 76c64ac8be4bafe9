"""The ground floor: errors, random numbers, units, writing files whole. Imports nothing else of Augury."""
