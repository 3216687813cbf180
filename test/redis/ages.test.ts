/** Answers behind an unchanged tag over Redis. */
import { it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { holdAges } from '../contract/ages.js'
import { createClock } from '../contract/clock.js'
import { describeStores } from './matrix.js'
import { createObserver } from './router.js'

describeStores('the ages over Redis', (_, place) => {
  it('reads every answer as it is while a node and a client are silent', async () => {
    const { now, advance } = createClock()
    const stopped = now()
    // The clock of the node stops, and that of the observer continues.
    const where = place()
    const facilities = createRedisFacilities({ ...where, now: () => stopped, nodeId: 'n' })
    await holdAges(facilities, createObserver({ ...where, now }), advance)
    await facilities.close()
  })
})
