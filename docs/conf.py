# The user guide: `make docs` writes build/docs/html/index.html.
project = "fxcpp"
author = "the fxcpp authors"

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["Doxyfile", "requirements.txt"]

html_theme = "furo"
html_title = "fxcpp"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
html_static_path = ["_static"]
html_css_files = ["fxcpp.css"]
