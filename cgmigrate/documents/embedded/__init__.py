"""Files whose instructions are shell code: Dockerfiles and makefiles."""

from cgmigrate.documents.embedded.dockerfile import DockerDocument
from cgmigrate.documents.embedded.makefile import MakeDocument

__all__ = ["DockerDocument", "MakeDocument"]
