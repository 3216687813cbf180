/** What goes wrong: links, nodes, clocks and the store, one fault after the other. */
import type { Fault } from '../config.js'
import type { SimulatedNode } from '../node.js'
import type { Dice } from '../random.js'
import type { Stage } from '../stage.js'

const HOUR = 3_600_000

/** Every reply to this node counts down to the one that is lost. */
interface Pending {
  node: SimulatedNode
  replies: number
}

async function happen(stage: Stage, dice: Dice, fault: Fault, node: SimulatedNode, losing: { next: Pending | null }) {
  const { world, history } = stage
  const links = [...node.life.links]
  const commands = links.find((link) => !link.isSubscriber)
  const subscriber = links.find((link) => link.isSubscriber) as
    | ({ isDeaf?: boolean } & (typeof links)[number])
    | undefined
  switch (fault) {
    case 'link breaks':
      return commands?.cut('a fault', dice.pick([20, 300, 2_500]))
    case 'reply is lost':
      losing.next = { node, replies: 1 + dice.int(8) }
      return
    case 'link stalls':
      return commands?.stall(dice.pick([300, 1_500, 2_600, 5_000]), false)
    case 'replies stall':
      return commands?.stall(dice.pick([300, 1_900, 2_600]), true)
    case 'subscriber breaks':
      return subscriber?.cut('a fault', dice.pick([20, 800, 4_000]))
    case 'subscriber goes deaf':
      if (subscriber) subscriber.isDeaf = true
      return
    case 'node stands still': {
      const ms = dice.pick([300, 1_800, 3_000, 6_500, 16_000])
      node.pause(ms)
      history.pauses.push({ node: node.name, from: world.now, to: world.now + ms })
      return
    }
    case 'node clock steps':
      node.wallOffset += dice.pick([-HOUR / 6, -3_000, 3_000, HOUR / 6])
      return
    case 'node dies':
      stage.kill(node)
      void world.sleep(dice.pick([50, 1_500, 7_000])).then(() => {
        if (!stage.isOver) stage.start(node)
      })
      return
    case 'store pauses':
      world.storeBlockedUntil = world.now + dice.pick([300, 1_500, 2_500, 4_000])
      return
    case 'store clock steps':
      world.storeOffset += dice.pick([-20_000, -1_500, 1_500, 20_000])
      history.hasClockSteps = true
      return
    case 'store restarts':
    case 'store loses writes': {
      const lost = fault === 'store restarts' ? 0 : dice.pick([1, 3, 10, 40, Number.MAX_SAFE_INTEGER])
      if (lost > 0) history.losses.push(world.now)
      const downMs = dice.pick([50, 1_500])
      await new Promise<void>((resolve) => {
        world.at(world.now, null, () => world.restartStore(lost, downMs).then(resolve), 0).isAwaited = true
      })
      return
    }
    case 'store is full': {
      history.wasFull = true
      await world.setFull(true)
      await world.sleep(dice.pick([500, 3_000, 9_000]))
      await world.setFull(false)
    }
  }
}

export function actAsFate(stage: Stage, endsAt: number): void {
  const { world, history, config } = stage
  const losing: { next: Pending | null } = { next: null }
  world.loseReply = (node) => {
    if (losing.next?.node !== node || --losing.next.replies > 0) return false
    losing.next = null
    return true
  }
  stage.act('faults', async (dice) => {
    while (world.now < endsAt && config.faults.length > 0) {
      await world.sleep(dice.between(0.2, 2) * config.faultEveryMs)
      const node = stage.anyNode(dice)
      if (world.now >= endsAt || !node) continue
      const fault = dice.pick(config.faults)
      history.faults.push({ fault, node: node.name, at: world.now })
      world.count(`fault: ${fault}`)
      world.say(() => `FAULT ${fault} (${node.name})`)
      await happen(stage, dice, fault, node, losing)
    }
  })
}
