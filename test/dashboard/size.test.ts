/** What a browser loads before it shows anything: it is looked at over slow links, from inside a failing network. */
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createDashboard } from '../../src/dashboard/index.js'

const MOST_BYTES = 40 * 1024

it('is at most 40 KiB under gzip, the one encoding that the package contains, with the page that names its files', async () => {
  const dashboard = createDashboard({ api: '/ops/diagnostics' })
  const requested = (path: string) =>
    dashboard(new Request(`http://localhost/dashboard/${path}`, { headers: { 'accept-encoding': 'gzip' } }))
  const shell = await (await requested('')).text()
  const names = [...shell.matchAll(/dashboard-[0-9a-f]{16}\.(?:js|css)/g)].map(([name]) => name)
  expect(names.length).toBe(2)
  const sizes = await Promise.all(
    names.map(async (name) => {
      const response = await requested(name)
      expect(response.headers.get('content-encoding')).toBe('gzip')
      return (await response.arrayBuffer()).byteLength
    }),
  )
  expect(sizes.reduce((sum, size) => sum + size, gzipSync(shell).length)).toBeLessThanOrEqual(MOST_BYTES)
})
