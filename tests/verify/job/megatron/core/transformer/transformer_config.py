"""A configuration with the settings of 0.19."""

from dataclasses import dataclass, field


@dataclass
class TransformerConfig:
    cuda_graph_impl: str = "none"
    cuda_graph_modules: list = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.cuda_graph_impl == "refused":
            raise ValueError("no such implementation")
