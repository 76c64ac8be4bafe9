"""Runs, audits and adaptations as one self-contained HTML file: no network, no server, no torch.

The figures are SVG written here, without a plotting library: one that draws in the browser brings 1 to 4 MB of script
into every report, and its figures have no description for screen readers, keep their own colours in dark mode, and are
blank without JavaScript.
"""
