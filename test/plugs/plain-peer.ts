/** A peer whose connections are nothing but that: what follows connections is tried without a wire. */
import { createConnectionFollower } from '../../src/plugs/follow/connections.js'
import type { Identity } from '../../src/plugs/follow/writer.js'
import { nameOf, type World } from './world.js'

/** A connection of a peer that is nothing else. */
export interface Plain {
  readonly identity: Identity
}

export const plain = (i: number, instance_id = 'one'): Plain => ({
  identity: { user_id: `user-${i % 10}`, client_id: `client-${i}`, instance_id, client_type: 'console' },
})

/** A peer whose every connection answers at once when it is asked for a sign of life. */
export function createPeer(world: World, connections = world.facilities.connections, maxFollowed = 1_000) {
  const there = new Set<Plain>()
  const errors: unknown[] = []
  const superseded: string[] = []
  const follower = createConnectionFollower<Plain>({
    connections,
    heartbeatMs: 100,
    maxFollowed,
    metadataOf: () => ({}),
    probe: (one) => follower.seen(one),
    release: () => {},
    report: (error) => void errors.push(error),
    connected: () => {},
    superseded: ({ identity }) => void superseded.push(nameOf(identity)),
    now: () => performance.now(),
  })
  return {
    follower,
    errors,
    superseded,
    said: () => [...there].map(({ identity }) => nameOf(identity)),
    come(one: Plain) {
      there.add(one)
      follower.follow(one, () => one.identity)
      return one
    },
    go(one: Plain, reason = 'gone') {
      there.delete(one)
      follower.leave(one, reason)
    },
  }
}
