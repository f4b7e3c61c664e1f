"""The flow of objects through the code of a project: which settings they have, before and after some edits.

Each entry point of the project's code (a recipe, a helper that takes a configuration, a test) is evaluated with the
old texts under the source release and with the edited ones under the target release. Only the statements are evaluated
that touch a setting, or what such a statement needs: the slice. What is not followed is unknown; an unknown condition
is decided in both ways, the same before and after.
"""
