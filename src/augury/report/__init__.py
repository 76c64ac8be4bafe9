"""Runs, audits and adaptations as one HTML file that anybody can open: no network, no server, no torch.

The figures are SVG that this room writes itself, and the slider is a page of JavaScript, where a plotting library
would be the usual choice. A library that draws in the browser brings 1 to 4 MB of script into every report, which
must be parsed before anything is seen; its figures carry no description for a screen reader, keep their own
colours in dark mode, and are blank without JavaScript. What we draw is lines, bars and frames: a few hundred lines
of Python that can be tested, and a report that opens at once and still does in ten years.
"""
