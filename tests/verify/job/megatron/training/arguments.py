"""The flags of the job."""

import argparse


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-layers", type=int, default=1)
    parser.add_argument("--train-iters", type=int, default=100)
    parser.add_argument("--cuda-graph-impl", default="none")
    parser.add_argument("--cuda-graph-modules", nargs="*", default=[])
    parser.add_argument("--cuda-graph-scope", nargs="*", default=None)
    parser.add_argument("--drift", action="store_true", help="compute something else under graphs")
    args = parser.parse_args()
    if args.cuda_graph_scope is not None:
        args.cuda_graph_modules = args.cuda_graph_scope
    return args
