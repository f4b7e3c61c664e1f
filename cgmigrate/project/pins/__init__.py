"""The release of megatron-core that a project pins: in a lock file, a requirement, a source tree or an image.

Each kind of file has a module that reads it as requirements; `folders` combines those of a folder, `search` finds the
nearest folder with a pin, and `resolution` decides the source and target release.
"""
