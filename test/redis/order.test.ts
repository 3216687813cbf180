import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { orderBattery } from '../contract/order.js'
import { describeStores } from './matrix.js'

describeStores('the order of lists in Redis', (kind, place) => {
  orderBattery(kind, ({ now }) => createRedisFacilities({ ...place(), now }))
})
