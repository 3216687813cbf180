import { createRedisBrowserWindowRegistry } from '../../src/redis/browser-windows/facility.js'
import { browserWindowBattery } from '../contract/browser-windows.js'
import { describeStores } from './matrix.js'

describeStores('the browser-window registry in Redis', (kind, place) => {
  browserWindowBattery(kind, (options) => createRedisBrowserWindowRegistry({ ...place(), ...options }))
})
