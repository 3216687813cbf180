import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { orderBattery } from '../contract/order.js'

orderBattery('memory', ({ now }) => createMemoryFacilities({ now }))
