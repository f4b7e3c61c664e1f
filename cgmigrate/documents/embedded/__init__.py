"""Files whose instructions are shell code: Dockerfiles and makefiles."""

from cgmigrate.documents.embedded.dockerfile import DockerDocument

__all__ = ["DockerDocument"]
