"""What goes in and what comes out, a module per noun; field descriptions are the API's documentation."""
