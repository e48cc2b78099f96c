"""The networks of the recurrent models once more, in plain numpy, as the paper and its released code have them."""

import numpy as np


def mlp(network, *inputs):
    """One hidden layer of ReLU units over the concatenated inputs, linear output."""
    hidden, output = network.hidden, network.output
    weights = np.concatenate([np.asarray(w) for w in hidden.weights])
    preactivation = np.concatenate(inputs) @ weights + np.asarray(hidden.bias)
    return np.maximum(preactivation, 0) @ np.asarray(output.weights[0]) + np.asarray(output.bias)


def lstm(network, hidden, cell, *inputs):
    """Forget gate with a bias of one on top of the trained one."""
    weights = np.concatenate([np.asarray(w) for w in network.gates.weights])
    gates = np.concatenate([*inputs, hidden]) @ weights + np.asarray(network.gates.bias)
    enter, candidate, forget, leave = np.split(gates, 4)
    cell = sigmoid(forget + 1) * cell + sigmoid(enter) * np.tanh(candidate)
    return sigmoid(leave) * np.tanh(cell), cell


def backward_run(network, inputs):
    """Hidden states of an LSTM run from the last input to the first."""
    hidden, cell, states = np.zeros(network.size), np.zeros(network.size), []
    for parts in reversed(inputs):
        hidden, cell = lstm(network, hidden, cell, *parts)
        states.append(hidden)
    return states[::-1]


def normal(outputs, shift=0.5):
    """Mean and standard deviation."""
    mean, raw = np.split(outputs, 2)
    return mean, np.log1p(np.exp(raw + shift)) + 1e-4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logit(p):
    return np.log(p) - np.log1p(-p)
