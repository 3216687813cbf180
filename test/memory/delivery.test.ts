/** The contract of a dispatcher, over memory. */
import { describe } from 'vitest'
import { createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { deliveryContract } from '../contract/delivery.js'

describe('the memory dispatcher', () => deliveryContract((settings) => createCommandDispatcher(settings)))
