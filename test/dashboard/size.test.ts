/** What a browser loads before it shows anything: it is looked at over slow links, from inside a failing network. */
import { brotliCompressSync, gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createDashboard } from '../../src/dashboard/index.js'

const MOST_BYTES = 44_000

it('is at most 44 kB as brotli, with the page that names its files', async () => {
  const dashboard = createDashboard({ api: '/ops/diagnostics' })
  const requested = (path: string) =>
    dashboard(new Request(`http://localhost/dashboard/${path}`, { headers: { 'accept-encoding': 'gzip' } }))
  const shell = await (await requested('')).text()
  const names = [...shell.matchAll(/dashboard-[0-9a-f]{16}\.(?:js|css)/g)].map(([name]) => name)
  expect(names.length).toBe(2)
  const texts = await Promise.all(
    names.map(async (name) => {
      const response = await requested(name)
      expect(response.headers.get('content-encoding')).toBe('gzip')
      return gunzipSync(await response.arrayBuffer())
    }),
  )
  const sizes = [shell, ...texts].map((text) => brotliCompressSync(text).byteLength)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MOST_BYTES)
})
