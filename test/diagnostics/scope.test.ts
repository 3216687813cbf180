import { afterAll, beforeAll } from 'vitest'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createClock } from '../contract/clock.js'
import { describeScope, SCOPES, type Worlds } from './scoped.js'
import { Ids, MARKS, type Mark, tell } from './scoped-world.js'

const ends: (() => unknown)[] = []

async function worldOf(users: readonly Mark[]) {
  const clock = createClock()
  const ids = new Ids()
  const named = { newId: ids.next, rpc: { newId: ids.next }, bus: { newId: () => 'epoch' } }
  const facilities = createMemoryFacilities({ now: clock.now, ...named })
  ends.push(() => facilities.close())
  await tell(facilities, clock, ids, users)
  return { ...memoryComposition(facilities), now: clock.now }
}

let worlds: Worlds
beforeAll(async () => {
  const full = await worldOf(MARKS)
  const [none, ann, team] = await Promise.all([worldOf(SCOPES.none), worldOf(SCOPES.ann), worldOf(SCOPES.team)])
  worlds = { full, alone: { none, ann, team }, now: full.now }
})
afterAll(() => Promise.all(ends.map((end) => end())))

describeScope('in memory', () => worlds, [2])
