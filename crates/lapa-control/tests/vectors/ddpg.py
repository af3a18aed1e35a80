"""Writes three updates of DDPG or TD3 by PyTorch, in double precision.

    python ddpg.py > ddpg.json
    python ddpg.py td3 > td3.json

Parameters are flat: weight (row by row), then bias, of one layer after the other.
"""

import copy
import json
import sys

import torch
from torch import nn

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)

STATES, ACTIONS, HIDDEN, BATCH, UPDATES = 3, 2, 5, 4, 3
TD3 = sys.argv[1:] == ["td3"]
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
if TD3:
    twin, twin_target = network(STATES + ACTIONS, 1), network(STATES + ACTIONS, 1)
    networks |= {"twin": twin, "twin_target": twin_target}
for each in networks.values():
    # Exact in single precision.
    for parameter in each.parameters():
        parameter.data = parameter.data.float().double()
actor_adam = torch.optim.Adam(actor.parameters(), lr=ACTOR_RATE)
critic_adam = torch.optim.Adam(critic.parameters(), lr=CRITIC_RATE)
twin_adam = torch.optim.Adam(twin.parameters(), lr=CRITIC_RATE) if TD3 else None


def parameters():
    """Of all networks, flat; a twin with its target."""
    values = {name: flat(each) for name, each in networks.items()}
    if TD3:
        values["twin"] = [values["twin"], values.pop("twin_target")]
    return values


def fit(critic, adam):
    loss = nn.functional.mse_loss(critic(torch.cat([states, actions], 1)), targets)
    adam.zero_grad()
    loss.backward()
    adam.step()
    return loss.item()


result = {
    "states": STATES,
    "actions": ACTIONS,
    "hidden": HIDDEN,
    "discount": DISCOUNT,
    "soft_update": SOFT_UPDATE,
    "actor_rate": ACTOR_RATE,
    "critic_rate": CRITIC_RATE,
    "initial": parameters(),
    "updates": [],
}
for update in range(1, UPDATES + 1):
    states, next_states = torch.randn(2, BATCH, STATES).float().double()
    actions = (2 * torch.rand(BATCH, ACTIONS) - 1).float().double()
    rewards = torch.randn(BATCH, 1).float().double()

    smoothing = (0.2 * torch.randn(BATCH, ACTIONS)).clamp(-0.5, 0.5).float().double() if TD3 else torch.zeros(0)

    with torch.no_grad():
        next_actions = actor_target(next_states)
        if TD3:
            next_actions = (next_actions + smoothing).clamp(-1, 1)
        following = torch.cat([next_states, next_actions], 1)
        next_values = critic_target(following)
        if TD3:
            next_values = torch.minimum(next_values, twin_target(following))
        targets = rewards + DISCOUNT * next_values
    critic_loss, actor_loss = fit(critic, critic_adam), None
    if TD3:
        fit(twin, twin_adam)
    if not TD3 or update % 2 == 0:
        actor_loss = -critic(torch.cat([states, actor(states)], 1)).mean()
        actor_adam.zero_grad()
        actor_loss.backward()
        actor_adam.step()
        actor_loss = actor_loss.item()
        follow(critic_target, critic)
        follow(actor_target, actor)
        if TD3:
            follow(twin_target, twin)
    result["updates"].append(
        {
            "batch": {
                "states": states.flatten().tolist(),
                "actions": actions.flatten().tolist(),
                "rewards": rewards.flatten().tolist(),
                "next_states": next_states.flatten().tolist(),
            }
            | ({"smoothing": smoothing.flatten().tolist()} if TD3 else {}),
            "critic_loss": critic_loss,
            "actor_loss": actor_loss,
            "after": parameters(),
        }
    )
print(json.dumps(result))
