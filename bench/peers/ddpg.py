"""stable-baselines3 side of the DDPG benchmark.

Reads one command per line on standard input and answers one JSON line on standard output, so that
`cargo xtask bench-peers --ddpg` can take turns between stable-baselines3 and our DDPG:

    about                    versions, and the threads of PyTorch
    steps HIDDEN BATCH S     steps per second over about S seconds
    quit

A step is one action, one step of the environment and one update. The environment has the sizes of
P1 with 15 devices: 17 numbers in a state, 15 in an action; its reward is a quadratic.
"""

import importlib.metadata
import time

import gymnasium
import numpy
import torch
from stable_baselines3 import DDPG
from stable_baselines3.common.noise import NormalActionNoise

from worker import serve

STATES, ACTIONS, EPISODE = 17, 15, 200


class Quadratic(gymnasium.Env):
    """The next state has the action and the reward in it."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-10.0, 10.0, (STATES,), numpy.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTIONS,), numpy.float32)
        self.best = numpy.linspace(-0.5, 0.5, ACTIONS, dtype=numpy.float32)
        self.state = numpy.zeros(STATES, numpy.float32)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        self.state = numpy.zeros(STATES, numpy.float32)
        self.steps = 0
        return self.state, {}

    def step(self, action):
        error = action - self.best
        reward = -float(error @ error)
        self.state = numpy.zeros(STATES, numpy.float32)
        self.state[:ACTIONS] = action
        self.state[-1] = reward
        self.steps += 1
        return self.state, reward, False, self.steps == EPISODE, {}


AGENTS = {}


def agent(hidden, batch):
    if (hidden, batch) not in AGENTS:
        noise = NormalActionNoise(numpy.zeros(ACTIONS), 0.1 * numpy.ones(ACTIONS))
        model = DDPG(
            "MlpPolicy",
            Quadratic(),
            batch_size=batch,
            buffer_size=100_000,
            learning_starts=batch,
            train_freq=1,
            gradient_steps=1,
            action_noise=noise,
            policy_kwargs={"net_arch": [hidden, hidden]},
            seed=0,
            device="cpu",
        )
        # Fills the replay buffer and the caches.
        model.learn(2 * batch + 50)
        AGENTS[hidden, batch] = model
    return AGENTS[hidden, batch]


def steps_per_second(hidden, batch, seconds):
    model = agent(hidden, batch)
    steps = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        model.learn(100, reset_num_timesteps=False)
        steps += 100
    return steps / (time.perf_counter() - start)


def answer(command, arguments):
    if command == "about":
        return {
            "stable_baselines3": importlib.metadata.version("stable-baselines3"),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }
    if command == "steps":
        hidden, batch, seconds = arguments
        return {"steps_per_s": steps_per_second(int(hidden), int(batch), float(seconds))}
    return {"error": f"unknown command {command}"}


if __name__ == "__main__":
    serve(answer)
