"""FIVO on a VRNN in eager PyTorch, with the care that one takes for speed there.

Particles of all sequences are rows of one matrix; what depends on x alone is computed for all steps at once; the layers
that read h share one product, and so do those that read phi_z; densities are written out instead of built as objects.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness.task import Task
from benchmarks.problems import observations


def step(
    batch: int,
    particles: int,
    hidden: int,
    steps: int,
    bound: str,
    parameters: str,
    threads: int,
    learning_rate: float = 3e-4,
    with_norm: bool = False,
    data: str = "music",
) -> Task:
    """One optimiser step a run; gives the bound per timestep and, if asked for, the gradient's norm."""
    model = VRNN(parameters)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    x = torch.from_numpy(observations(data, batch, steps))

    def call(index: int) -> list[float]:
        torch.set_num_threads(threads)
        torch.manual_seed(index)
        optimiser.zero_grad(set_to_none=True)
        loss = -model.log_evidence(x, particles, resample=bound == "fivo").mean() / steps
        loss.backward()
        outcome = [-loss.item()]
        if with_norm:
            outcome.append(float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])))
        optimiser.step()
        return outcome

    return Task(call, str(threads))


def evaluation(batch: int, particles: int, hidden: int, steps: int, parameters: str, threads: int) -> Task:
    """The bound without gradient."""
    model = VRNN(parameters)
    x = torch.from_numpy(observations("music", batch, steps))

    @torch.inference_mode()
    def call(index: int) -> float:
        torch.set_num_threads(threads)
        torch.manual_seed(index)
        return model.log_evidence(x, particles, resample=True).mean().item() / steps

    return Task(call, str(threads))


class MLP(nn.Module):
    """One hidden layer of ReLU units; `finish` goes on from its pre-activation."""

    def __init__(self, arrays: dict[str, np.ndarray], name: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(_transposed(arrays[f"{name}.hidden.weight"]))
        self.bias = nn.Parameter(torch.from_numpy(arrays[f"{name}.hidden.bias"]))
        self.output_weight = nn.Parameter(_transposed(arrays[f"{name}.output.weight"]))
        self.output_bias = nn.Parameter(torch.from_numpy(arrays[f"{name}.output.bias"]))

    def finish(self, preactivation: Tensor) -> Tensor:
        return F.linear(F.relu(preactivation), self.output_weight, self.output_bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.finish(F.linear(x, self.weight, self.bias))


class VRNN(nn.Module):
    """The paper's model with 88 Bernoullis, or with normals if the emission has two outputs for every entry."""

    def __init__(self, path: str) -> None:
        super().__init__()
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        for name in ("phi_x", "phi_z", "prior", "proposal", "emission"):
            setattr(self, name, MLP(arrays, name))
        self.gates = nn.Parameter(_transposed(arrays["lstm.weight"]))
        self.gate_bias = nn.Parameter(torch.from_numpy(arrays["lstm.bias"]))
        self.size = arrays["phi_z.output.bias"].shape[0]
        self.register_buffer("mean", torch.from_numpy(arrays["mean"]))
        self.normal = len(arrays["emission.output.bias"]) == 2 * len(arrays["mean"])
        forget = torch.zeros(4 * self.size)
        forget[2 * self.size : 3 * self.size] = 1
        self.register_buffer("forget_bias", forget)

    def log_evidence(self, x: Tensor, particles: int, *, resample: bool) -> Tensor:
        """log p-hat of every sequence of x [batch, time, entries]."""
        batch, steps, _ = x.shape
        size, rows = self.size, batch * particles
        from_x, from_z, from_h = self.gates.split(size, dim=1)
        proposal_h, proposal_x = self.proposal.weight.split(size, dim=1)
        emission_z, emission_h = self.emission.weight.split(size, dim=1)
        read_h = torch.cat([self.prior.weight, proposal_h, emission_h, from_h]).t()
        read_phi_z = torch.cat([from_z, emission_z]).t()
        offset = 0 if self.normal else torch.logit(self.mean.clamp(1e-4, 1 - 1e-4))

        frames = F.pad(x - self.mean, (0, 0, 1, 0)).transpose(0, 1)  # a zero frame before the first
        features = self.phi_x(frames)
        drive = F.linear(features[:-1], from_x, self.gate_bias + self.forget_bias)
        proposal_drive = F.linear(features[1:], proposal_x, self.proposal.bias)
        # One row per particle; unbinding once is cheaper than indexing in every step.
        drives = drive.repeat_interleave(particles, dim=1).unbind()
        proposal_drives = proposal_drive.repeat_interleave(particles, dim=1).unbind()
        targets = x.transpose(0, 1).repeat_interleave(particles, dim=1).unbind()
        noises = torch.randn(steps, rows, size).unbind()

        h, c = self._cell(drives[0], x.new_zeros(rows, size))
        log_weights = x.new_full((batch, particles), -float(np.log(particles)))
        uniform = log_weights
        first_rows = torch.arange(0, rows, particles).unsqueeze(1)
        total = x.new_zeros(batch)
        for t in range(steps):
            joint = h @ read_h
            prior_hidden, proposal_hidden, emission_hidden, gates_h = joint.split([size, size, size, 4 * size], dim=1)
            prior_mean, prior_raw = self.prior.finish(prior_hidden + self.prior.bias).chunk(2, dim=1)
            shift, raw = self.proposal.finish(proposal_hidden + proposal_drives[t]).chunk(2, dim=1)
            prior_scale = F.softplus(prior_raw + 0.5) + 1e-4
            scale = F.softplus(raw + 0.5) + 1e-4
            noise = noises[t]
            deviation = shift + scale * noise
            phi_z = self.phi_z(prior_mean + deviation)
            joint_z = phi_z @ read_phi_z
            gates_z, emission_part = joint_z.split([4 * size, size], dim=1)
            outputs = self.emission.finish(emission_part + emission_hidden + self.emission.bias) + offset
            log_likelihood = self._log_likelihood(outputs, targets[t])
            log_ratio = (
                torch.log(scale / prior_scale) - 0.5 * (deviation / prior_scale).square() + 0.5 * noise.square()
            ).sum(1)
            log_weights = log_weights + (log_likelihood + log_ratio).view(batch, particles)
            increment = torch.logsumexp(log_weights, dim=1)
            total = total + increment
            log_weights = log_weights - increment.unsqueeze(1)
            if t + 1 == steps:
                break
            gates = gates_h + gates_z
            if resample:
                weights = log_weights.detach().exp()
                weak = weights.square().sum(1) >= 2 / particles
                if weak.any():  # nothing is moved in a step where no sequence resamples
                    drawn = torch.multinomial(weights, particles, replacement=True)
                    ancestors = torch.where(weak.unsqueeze(1), drawn, torch.arange(particles)) + first_rows
                    ancestors = ancestors.view(-1)
                    gates, c = gates.index_select(0, ancestors), c.index_select(0, ancestors)
                    log_weights = torch.where(weak.unsqueeze(1), uniform, log_weights)
            h, c = self._cell(gates + drives[t + 1], c)
        return total

    def _log_likelihood(self, outputs: Tensor, target: Tensor) -> Tensor:
        if not self.normal:
            return -F.binary_cross_entropy_with_logits(outputs, target, reduction="none").sum(1)
        mean, raw = outputs.chunk(2, dim=1)
        scale = F.softplus(raw + 0.25) + 1e-4
        constant = 0.5 * float(np.log(2 * np.pi)) * target.shape[1]
        return -(0.5 * ((target - mean) / scale).square() + torch.log(scale)).sum(1) - constant

    def _cell(self, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        enter, candidate, forget, leave = gates.chunk(4, dim=1)
        c = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(candidate)
        return torch.sigmoid(leave) * torch.tanh(c), c


def _transposed(weight: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(weight.T))
