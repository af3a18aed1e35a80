"""Writes ddpg.json: three updates of DDPG by PyTorch, in double precision.

    python ddpg.py > ddpg.json

Parameters are flat: weight (row by row), then bias, of one layer after the other.
"""

import copy
import json

import torch
from torch import nn

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)

STATES, ACTIONS, HIDDEN, BATCH, UPDATES = 3, 2, 5, 4, 3
DISCOUNT, SOFT_UPDATE, ACTOR_RATE, CRITIC_RATE = 0.9, 0.1, 1e-2, 2e-2


def network(inputs, outputs, *last):
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs), *last
    )


def flat(network):
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()]).tolist()


def follow(target, network):
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), network.parameters()):
            slow.mul_(1 - SOFT_UPDATE).add_(SOFT_UPDATE * fast)


actor, critic = network(STATES, ACTIONS, nn.Tanh()), network(STATES + ACTIONS, 1)
# Targets of their own, so that a target in the place of a network would show.
actor_target, critic_target = network(STATES, ACTIONS, nn.Tanh()), network(STATES + ACTIONS, 1)
networks = {"actor": actor, "critic": critic, "actor_target": actor_target, "critic_target": critic_target}
for each in networks.values():
    # Exact in single precision.
    for parameter in each.parameters():
        parameter.data = parameter.data.float().double()
actor_adam = torch.optim.Adam(actor.parameters(), lr=ACTOR_RATE)
critic_adam = torch.optim.Adam(critic.parameters(), lr=CRITIC_RATE)

result = {
    "states": STATES,
    "actions": ACTIONS,
    "hidden": HIDDEN,
    "discount": DISCOUNT,
    "soft_update": SOFT_UPDATE,
    "actor_rate": ACTOR_RATE,
    "critic_rate": CRITIC_RATE,
    "initial": {name: flat(each) for name, each in networks.items()},
    "updates": [],
}
for _ in range(UPDATES):
    states, next_states = torch.randn(2, BATCH, STATES).float().double()
    actions = (2 * torch.rand(BATCH, ACTIONS) - 1).float().double()
    rewards = torch.randn(BATCH, 1).float().double()

    with torch.no_grad():
        next_values = critic_target(torch.cat([next_states, actor_target(next_states)], 1))
        targets = rewards + DISCOUNT * next_values
    critic_loss = nn.functional.mse_loss(critic(torch.cat([states, actions], 1)), targets)
    critic_adam.zero_grad()
    critic_loss.backward()
    critic_adam.step()

    actor_loss = -critic(torch.cat([states, actor(states)], 1)).mean()
    actor_adam.zero_grad()
    actor_loss.backward()
    actor_adam.step()

    follow(critic_target, critic)
    follow(actor_target, actor)
    result["updates"].append(
        {
            "batch": {
                "states": states.flatten().tolist(),
                "actions": actions.flatten().tolist(),
                "rewards": rewards.flatten().tolist(),
                "next_states": next_states.flatten().tolist(),
            },
            "critic_loss": critic_loss.item(),
            "actor_loss": actor_loss.item(),
            "after": {name: flat(each) for name, each in networks.items()},
        }
    )
print(json.dumps(result))
