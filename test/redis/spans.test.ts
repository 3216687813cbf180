import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { spanBattery } from '../contract/spans.js'
import { describeStores } from './matrix.js'

describeStores('a span of a list in Redis', (kind, place) => {
  spanBattery(kind, ({ now }) => createRedisFacilities({ ...place(), now }))
})
