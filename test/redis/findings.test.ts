import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { findingsBattery } from '../contract/findings.js'
import { describeStores } from './matrix.js'
import { createObserver, get } from './router.js'

describeStores('the findings over Redis', (kind, place) => {
  findingsBattery(
    kind,
    (options) => {
      const where = place()
      const facilities = createRedisFacilities({ ...where, ...options })
      const observer = createObserver({ ...where, now: options?.now })
      return { facilities, get: (path) => get(observer, path) }
    },
    4,
  )
})
