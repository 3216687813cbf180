/** What is written of one client while a reply of the registry is pending, or after the registry has lost it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Connection } from '../../src/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createConnectionFollower } from '../../src/plugs/follow/connections.js'
import { soon } from '../redis/wait-for.js'
import { createPeer, plain } from './plain-peer.js'
import { agree, createMemoryWorld } from './world.js'

const HEARTBEAT_MS = 100
const down = () => Promise.reject(new Refusal('unavailable', 'down, as the test has it'))

interface Peer {
  rooms: string[]
}

/** A follower over a registry that replies as a test says, and one connection of it. */
function createWorld() {
  const told: unknown[] = []
  let at = 0
  const answers = { connect: async () => {}, heartbeat: async () => true }
  const follower = createConnectionFollower<Peer>({
    connections: {
      async connect({ metadata }) {
        told.push(['connect', metadata])
        await answers.connect()
        return { connection_id: 'connection-1' } as Connection
      },
      async heartbeat(_id, metadata) {
        told.push(['heartbeat', metadata])
        return answers.heartbeat()
      },
      disconnect: async () => true,
      currentInstance: async () => null,
    },
    heartbeatMs: HEARTBEAT_MS,
    maxFollowed: 10,
    metadataOf: ({ rooms }) => ({ rooms: [...rooms] }),
    probe: () => {},
    release: () => {},
    report: () => {},
    connected: () => {},
    superseded: () => {},
    now: () => at,
  })
  const peer: Peer = { rooms: [] }
  return {
    answers,
    follower,
    tells: (what: unknown) => soon(() => expect(told).toContainEqual(what)),
    join: () => follower.follow(peer, () => plain(0).identity),
    seen: () => follower.seen(peer),
    enter(room: string) {
      peer.rooms.push(room)
      follower.changed(peer)
    },
    pass(ms: number) {
      at += ms
    },
  }
}

/** An answer that comes when a test says so. */
function held<T>() {
  let answer: (value: T | PromiseLike<T>) => void = () => {}
  const promise = new Promise<T>((resolve) => {
    answer = resolve
  })
  return { answer, promise }
}

describe('what a client says of itself', () => {
  let world: ReturnType<typeof createWorld>
  beforeEach(() => {
    world = createWorld()
  })
  afterEach(() => world.follower.close())

  it('is written when it has changed while the connect was under way', async () => {
    const connect = held<void>()
    world.answers.connect = () => connect.promise
    world.join()
    await world.tells(['connect', { rooms: [] }])
    world.enter('hall')
    connect.answer()
    await world.tells(['heartbeat', { rooms: ['hall'] }])
  })

  it.each([
    ['was under way', () => true],
    ['failed', down],
  ])('is written when it has changed while a sign of life %s', async (_, answer) => {
    world.join()
    await world.tells(['connect', { rooms: [] }])
    const beat = held<boolean>()
    world.answers.heartbeat = () => beat.promise
    world.pass(HEARTBEAT_MS)
    world.seen()
    await world.tells(['heartbeat', undefined])
    world.enter('hall')
    world.answers.heartbeat = async () => true
    beat.answer(answer())
    await world.tells(['heartbeat', { rooms: ['hall'] }])
  })
})

it('reports a superseded connection each time', async () => {
  const world = createMemoryWorld()
  const peer = createPeer(world)
  const older = peer.come(plain(0))
  await agree(world, peer.said)
  const second = peer.come(plain(0, 'two'))
  await soon(() => expect(peer.superseded).toHaveLength(1))
  peer.go(second)
  await agree(world, peer.said)
  peer.come(plain(0, 'three'))
  const [name] = peer.said()
  await soon(() => expect(peer.superseded).toEqual([name, name]))
  expect(older.identity.instance_id).toBe('one')
  await peer.follower.close()
  await world.close()
})

describe('those who are silent', () => {
  const MANY = 1_200
  const TURN = 500

  /** Follows many who never answer; `onTurn` hears how many were asked in each turn. */
  function createSilent(onTurn: (asked: number) => void) {
    let asked = 0
    let at = 0
    const follower = createConnectionFollower<object>({
      connections: createMemoryWorld().facilities.connections,
      heartbeatMs: 20,
      maxFollowed: MANY,
      metadataOf: () => ({}),
      probe() {
        if (asked++ > 0) return
        queueMicrotask(() => {
          const turn = asked
          asked = 0
          onTurn(turn)
        })
      },
      release: () => {},
      report: () => {},
      connected: () => {},
      superseded: () => {},
      now: () => at,
    })
    for (let i = 0; i < MANY; i++) follower.follow({}, () => new Promise(() => {}))
    at = 1_000
    return follower
  }

  it('are asked so many at a turn, that others have theirs', async () => {
    const turns: number[] = []
    const follower = createSilent((asked) => turns.push(asked))
    await soon(() => expect(turns.length).toBeGreaterThanOrEqual(3))
    expect(turns.slice(0, 3)).toEqual([TURN, TURN, MANY - 2 * TURN])
    await follower.close()
  })

  it('are asked no more when the follower is closed', async () => {
    const turns: number[] = []
    const { promise: closed, answer } = held<unknown>()
    const follower = createSilent((asked) => {
      turns.push(asked)
      answer(follower.close())
    })
    await closed
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(turns).toEqual([TURN])
  })
})
