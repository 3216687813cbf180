/** Names of one user that begin another's: no comparison of prefixes may take one for the other. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkId } from '../../src/internal/contract/ids.js'
import { isReservedStream, ownStream, userStream } from '../../src/internal/contract/ingest.js'
import { parsePrefix } from '../../src/internal/http/target.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { ASK } from './clock.js'

const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => checkId(text) === undefined)

/** A user, and another whose id begins with the first one's. */
const pair = fc
  .tuple(id, id)
  .map(([short, more]) => [short, short + more] as const)
  .filter(([, long]) => checkId(long) === undefined)

describe('a user whose id begins another user’s', () => {
  it('never writes below the other', () => {
    fc.assert(
      fc.property(pair, ([short, long]) => {
        const theirs = userStream(long, 'log')
        expect(ownStream(long, theirs)).toBe(theirs)
        const mine = ownStream(short, theirs)
        expect(mine).not.toBe(theirs)
        expect(mine.startsWith(`${userStream(short)}/users/`)).toBe(true)
        expect(isReservedStream(ownStream(short, userStream(long, 'clients', 'c', 'commands')))).toBe(false)
      }),
    )
  })

  it('has its messages below itself when it names a stream of the other', async () => {
    const { connections, ingest, history } = createMemoryFacilities()
    const me = { user_id: 'al', client_id: 'c', instance_id: 'i' }
    await connections.connect({ ...me, client_type: 'web' })
    await ingest({ ...me, message_id: 'm', stream: 'users/alice/log', kind: 'event' })
    const read = async (stream: string) => (await history.inspector.readMessages({ stream, limit: 1 }, ASK)).items
    expect(await read('users/alice/log')).toEqual([])
    expect(await read('users/al/users/alice/log')).toHaveLength(1)
  })

  it('is not under a mount prefix that begins its own', () => {
    fc.assert(
      fc.property(pair, ([short, long]) => {
        const own = parsePrefix(`/${encodeURIComponent(`x${short}`)}`)
        expect(own.owns(`${own.path}/a`)).toBe(true)
        expect(own.owns(`${parsePrefix(`/${encodeURIComponent(`x${long}`)}`).path}/a`)).toBe(false)
      }),
    )
  })
})
