/** The contract of a dispatcher, over a shared store. */
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { deliveryContract } from '../contract/delivery.js'
import { describeStores } from './matrix.js'

describeStores('the dispatcher in Redis', (_kind, place) => {
  deliveryContract((settings) => createRedisCommandDispatcher({ ...place(), ...settings }))
})
