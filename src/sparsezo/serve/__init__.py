"""People in the loop: questions leased to people, answers on disk before they count, a model that learns from them.

    with Session(task_spec("chunking"), task, corpus, settings, "np.serve") as session:
        ann = session.add_person("Ann")
        person = session.person(ann["token"])
        question = session.ask(person)[0]               # plain values, as a page shows them
        session.tell(person, question["id"], "yes")     # returns once it is on disk

``sparsezo serve`` puts HTTP and a page before it; ``sparsezo replay`` makes the model from the log (docs/serve.md).
"""
