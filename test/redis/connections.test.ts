import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { connectionBattery } from '../contract/connections.js'
import { describeStores } from './matrix.js'

describeStores('the connection registry in Redis', (kind, place) => {
  connectionBattery(kind, (options) => createRedisConnectionRegistry({ ...place(), ...options }))
})
