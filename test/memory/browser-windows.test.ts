import { expect, it } from 'vitest'
import { createBrowserWindowRegistry } from '../../src/memory/browser-windows.js'
import { browserWindowBattery } from '../contract/browser-windows.js'

browserWindowBattery('memory', (options) => createBrowserWindowRegistry(options))

it('refuses a new window over its limit', async () => {
  const windows = createBrowserWindowRegistry({ maxEntries: 1 })
  await windows.report({ window_id: 'w1', user_id: 'u', client_id: 'c' })
  await windows.report({ window_id: 'w1', user_id: 'u', client_id: 'c' })
  await expect(windows.report({ window_id: 'w2', user_id: 'u', client_id: 'c' })).rejects.toMatchObject({
    code: 'capacity_exceeded',
  })
})
