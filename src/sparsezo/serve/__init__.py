"""People in the loop: questions in a browser, a model that learns from every answer, and a log that loses none."""
