"""A schedule that runs the microbatches one after the other."""


def get_forward_backward_func():
    return forward_backward


def forward_backward(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False):
    outputs = []
    for _ in range(num_microbatches):
        loss = forward_step_func(data_iterator, model[0])
        if not forward_only:
            loss.backward()
        outputs.append({"lm loss": loss.detach()})
    return outputs
