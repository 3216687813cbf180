import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { contextBattery } from '../contract/contexts.js'
import { describeStores } from './matrix.js'

describeStores('the context registry in Redis', (kind, place) => {
  contextBattery(kind, (options) => createRedisContextRegistry({ ...place(), ...options }))
})
