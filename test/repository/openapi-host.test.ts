/** Holds the host that generated clients and the proxy are tried against: every route of the built package has its answer there. */
import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { ROOT } from './imports.js'

const PROGRAM = `
import { openApiDocument } from 'relayscope'
import { checkRoutes } from './tools/openapi-clients/check-routes.mjs'
import { KEY, PREFIX, startHost } from './tools/openapi-host.mjs'

const host = await startHost()
const { asked, violations } = await checkRoutes(openApiDocument({ prefix: PREFIX }), host.url, KEY)
await host.close()
console.log(JSON.stringify({ asked, violations }))
`

it('tools/openapi-host.mjs has something to answer on every route', () => {
  const run = ['--input-type=module', '--eval', PROGRAM]
  const { asked, violations } = JSON.parse(execFileSync(process.execPath, run, { cwd: ROOT, encoding: 'utf8' }))
  expect(violations).toEqual([])
  expect(asked).toBeGreaterThan(100)
})
