/** What is written of one client while an answer of the registry is under way, or the registry has lost what it knew. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Connection } from '../../src/index.js'
import type { Member } from '../../src/plugs/follow/client-writer.js'
import { createClients } from '../../src/plugs/follow/clients.js'
import { createConnectionFollower } from '../../src/plugs/follow/connections.js'
import { Refusal } from '../../src/refusal.js'
import { soon } from '../redis/wait-for.js'
import { createPeer, plain } from './plain-peer.js'
import { agree, createMemoryWorld } from './world.js'

const HEARTBEAT_MS = 100
const down = () => Promise.reject(new Refusal('unavailable', 'down, as the test has it'))

interface Peer {
  rooms: string[]
}

/** Clients over a registry that answers as a test has it, and one member of them. */
function createWorld() {
  const told: unknown[] = []
  let at = 0
  const answers = {
    connect: async () => {},
    heartbeat: async () => true,
    holder: null as string | null,
  }
  const clients = createClients<Peer>({
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
      async currentInstance() {
        told.push(['look', answers.holder])
        return answers.holder
      },
    },
    heartbeatMs: HEARTBEAT_MS,
    maxFollowed: 10,
    metadataOf: ({ rooms }) => ({ rooms: [...rooms] }),
    now: () => at,
    refuse: () => {},
    failed: () => {},
    connected: () => {},
    superseded: () => {},
    returned: () => {},
  })
  const peer: Peer = { rooms: [] }
  const member: Member<Peer> = {
    peer,
    arrival: 1,
    identity: undefined,
    client: undefined,
    seenAt: 0,
    isSuperseded: false,
    reason: 'unknown',
    leftAt: 0,
  }
  return {
    answers,
    clients,
    told,
    member,
    tells: (what: unknown) => soon(() => expect(told).toContainEqual(what)),
    join: () => clients.join(member, plain(0).identity),
    enter(room: string) {
      peer.rooms.push(room)
      clients.changed(member)
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
    world.clients.seen(world.member)
    await world.tells(['heartbeat', undefined])
    world.enter('hall')
    world.answers.heartbeat = async () => true
    beat.answer(answer())
    await world.tells(['heartbeat', { rooms: ['hall'] }])
  })
})

describe('a client that is held elsewhere', () => {
  const connects = ({ told }: ReturnType<typeof createWorld>) =>
    told.filter((what) => Array.isArray(what) && what[0] === 'connect').length

  it('stays there when the store has lost its data, until the one that held it must have written again', async () => {
    const world = createWorld()
    const { answers, clients, told } = world
    world.join()
    await world.tells(['connect', { rooms: [] }])
    Object.assign(answers, { heartbeat: async () => false, holder: 'two' })
    world.pass(HEARTBEAT_MS)
    clients.seen(world.member)
    await world.tells(['look', 'two'])
    const look = async (holder: string | null) => {
      answers.holder = holder
      const before = told.length
      await soon(() => {
        clients.retry()
        expect(told.length).toBeGreaterThan(before)
      })
    }
    await look(null)
    world.pass(HEARTBEAT_MS)
    await look(null)
    await look('two')
    world.pass(2 * HEARTBEAT_MS)
    await look(null)
    await look(null)
    expect(connects(world)).toBe(1)
    world.pass(2 * HEARTBEAT_MS)
    await look(null)
    await soon(() => expect(connects(world)).toBe(2))
  })
})

it('tells of a connection that is superseded each time that it is', async () => {
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
