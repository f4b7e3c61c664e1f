"""YAML files: ``document.py`` reads one and rewrites its settings."""

from cgmigrate.documents.yaml.document import YamlDocument

__all__ = ["YamlDocument"]
