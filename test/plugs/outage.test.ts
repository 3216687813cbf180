/** What a store that goes down and comes back costs a plug: evidence of what was between, and nothing else. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Connection } from '../../src/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createConnectionRegistry } from '../../src/memory/index.js'
import { describeRedis, type Server, startServer } from '../redis/server.js'
import { soon } from '../redis/wait-for.js'
import { failing, type Outage } from './failing.js'
import { createPeer, type Plain, plain } from './plain-peer.js'
import { agree, createMemoryWorld, createRedisWorld, type World } from './world.js'

const reasonsOf = async (world: World) => {
  const connections = await world.list<Connection>('/connections?status=disconnected')
  return new Map(connections.map(({ client_id, ended_reason }) => [client_id, ended_reason]))
}

/** One turn of the event loop, in which whatever can be written at once has been. */
const aTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('a facility that is down for a while', () => {
  let world: World
  const outage: Outage = { isDown: false, refused: 0 }
  beforeEach(() => {
    world = createMemoryWorld()
    Object.assign(outage, { isDown: false, refused: 0 })
  })
  afterEach(() => world.close())

  it('receives the current connections and those lost meanwhile, as unknown, when it is back', async () => {
    const peer = createPeer(world, failing(world.facilities.connections, outage))
    const early = Array.from({ length: 200 }, (_, i) => peer.come(plain(i)))
    await agree(world, peer.said)
    outage.isDown = true
    for (const one of early.slice(0, 50)) peer.go(one)
    for (let i = 200; i < 250; i++) peer.come(plain(i))
    // Connected and disconnected during the outage: these leave no evidence.
    for (let i = 250; i < 300; i++) peer.go(peer.come(plain(i)))
    for (let i = 50; i < 100; i++) {
      peer.go(early[i] as Plain)
      peer.come(plain(i, 'two'))
    }
    await soon(() => expect(peer.errors).not.toEqual([]))
    await aTurn()
    const refused = outage.refused
    // However much is to be written, the store is tried by one, and seldom.
    expect(refused).toBeLessThanOrEqual(32 + 2)
    expect(peer.errors.length).toBeLessThanOrEqual(2)
    outage.isDown = false
    await agree(world, peer.said)
    const reasons = await reasonsOf(world)
    expect([...reasons.keys()].every((client) => Number(client.slice(7)) < 250)).toBe(true)
    expect([reasons.get('client-0'), reasons.get('client-60')]).toEqual(['unknown', 'unknown'])
    expect(await peer.follower.close()).toEqual({ aborted: 0 })
  })

  it('shows a connection no longer than its lease when the reply to its connect was lost and it has closed', async () => {
    const connections = createConnectionRegistry({ heartbeatTimeoutMs: 200 })
    const peer = createPeer(world, {
      ...connections,
      async connect(input) {
        await connections.connect(input)
        throw new Refusal('unavailable', 'the reply was lost')
      },
    })
    const one = peer.come(plain(0))
    await soon(() => expect(peer.errors).toHaveLength(1))
    peer.go(one)
    expect(await peer.follower.close()).toEqual({ aborted: 0 })
    await soon(async () => expect(await connections.currentInstance(one.identity)).toBeNull())
  })

  it('is not waited for at the end', async () => {
    const peer = createPeer(world, failing(world.facilities.connections, outage))
    outage.isDown = true
    for (let i = 0; i < 3; i++) peer.come(plain(i))
    await soon(() => expect(peer.errors).not.toEqual([]))
    expect(await peer.follower.close()).toEqual({ aborted: 3 })
  })

  it('keeps a bounded number of connections that closed and cannot be disconnected', async () => {
    const { connections } = world.facilities
    const disconnect = () => Promise.reject(new Error('it refuses all calls'))
    const peer = createPeer(world, { ...connections, disconnect }, 3)
    for (let i = 0; i < 10; i++) {
      const one = peer.come(plain(i))
      await soon(async () => expect(await connections.currentInstance(one.identity)).toBe('one'))
      peer.go(one)
    }
    expect(await peer.follower.close()).toEqual({ aborted: 6 })
  })

  it('receives all others when one record fails, which is retried', async () => {
    const { connections } = world.facilities
    let asked = 0
    const peer = createPeer(world, {
      ...connections,
      async connect(input) {
        if (input.client_id !== 'client-0') return connections.connect(input)
        asked++
        throw new Error('a row that cannot be read')
      },
    })
    for (let i = 0; i < 100; i++) {
      peer.come(plain(i))
      await aTurn()
    }
    await agree(world, () => peer.said().slice(1))
    for (let i = 100; i < 200; i++) peer.come(plain(i))
    await agree(world, () => peer.said().slice(1))
    // The store is not taken for down: why each of the others goes is known.
    for (let i = 200; i < 220; i++) {
      const one = peer.come(plain(i))
      await agree(world, () => peer.said().slice(1))
      peer.go(one)
    }
    await agree(world, () => peer.said().slice(1))
    expect([...(await reasonsOf(world)).values()]).toEqual(Array.from({ length: 20 }, () => 'gone'))
    await soon(() => expect(asked).toBeGreaterThan(1))
    await peer.follower.close()
  })

  it('does not keep one that it refuses from the others', async () => {
    const peer = createPeer(world)
    peer.come({ identity: { ...plain(0).identity, client_id: ' ' } })
    for (let i = 1; i < 10; i++) peer.come(plain(i))
    await agree(world, () => peer.said().slice(1))
    expect(peer.errors).toMatchObject([{ code: 'invalid_input' }])
  })
})

describeRedis('a store that is killed and starts again empty', () => {
  let server: Server
  let world: World
  beforeEach(async () => {
    server = await startServer()
    world = await createRedisWorld(server.port)
  })
  afterEach(async () => {
    await world.close()
    await server.stop()
  })

  it('receives all current connections, and the host sees only the errors it asked for', async () => {
    const peer = createPeer(world)
    const early = Array.from({ length: 200 }, (_, i) => peer.come(plain(i)))
    await agree(world, peer.said)
    await server.kill()
    for (const one of early.slice(0, 50)) peer.go(one)
    for (let i = 200; i < 250; i++) peer.come(plain(i))
    await soon(() => expect(peer.errors).not.toEqual([]))
    const again = await startServer({ port: server.port })
    try {
      await agree(world, peer.said)
      expect(await peer.follower.close()).toEqual({ aborted: 0 })
    } finally {
      await again.stop()
    }
  })
})
