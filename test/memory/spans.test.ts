import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { spanBattery } from '../contract/spans.js'

spanBattery('memory', ({ now }) => createMemoryFacilities({ now }))
