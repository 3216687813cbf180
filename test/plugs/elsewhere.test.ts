/** Clients that are connected at two nodes at a time: who came last has them, and the other does not take them back. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { soon } from '../redis/wait-for.js'
import { createPeer, type Plain, plain } from './plain-peer.js'
import { agree, describeWorlds, nameOf, type World } from './world.js'

describeWorlds('a client at two nodes', (open) => {
  let world: World
  let here: ReturnType<typeof createPeer>
  let there: ReturnType<typeof createPeer>
  beforeEach(async () => {
    world = await open()
    here = createPeer(world)
    there = createPeer(world, (await world.another()).connections)
  })
  afterEach(async () => {
    await here.follower.close()
    await there.follower.close()
    await world.close()
  })

  /** Waits until the node of `one` has read more than once that another node holds the client. */
  async function hasLooked(one: Plain) {
    let reads = 0
    const { currentInstance } = world.facilities.connections
    world.facilities.connections.currentInstance = (client) => {
      reads++
      return currentInstance(client)
    }
    await soon(() => {
      here.follower.seen(one)
      expect(reads).toBeGreaterThan(2)
    })
  }

  it.each(['two', 'one'])('is held by the one that came last, as instance %s, until that goes', async (instance) => {
    const older = here.come(plain(0))
    await agree(world, here.said)
    const newer = there.come(plain(0, instance))
    await agree(world, there.said)
    await hasLooked(older)
    await agree(world, there.said)
    expect(here.superseded).toEqual(instance === 'two' ? here.said() : [])
    there.go(newer)
    await agree(world, here.said)
  })

  it('is not taken back by an older connection when a newer one of the same node closes', async () => {
    const oldest = here.come(plain(0))
    const second = here.come(plain(0, 'two'))
    await agree(world, () => [nameOf(second.identity)])
    there.come(plain(0, 'three'))
    await agree(world, there.said)
    await hasLooked(second)
    here.go(second)
    await hasLooked(oldest)
    await agree(world, there.said)
  })
})
