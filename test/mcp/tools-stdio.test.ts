import { beforeAll } from 'vitest'
import { buildCommand } from '../cli/process.js'
import { KEY } from '../diagnostics/subject.js'
import { connectStdio, ERAS, serveRouter } from './subject.js'
import { describeTools, router } from './tools.js'

beforeAll(buildCommand)

describeTools(
  ERAS.map((era) => [
    `stdio, ${era}`,
    async () => connectStdio(['--url', await serveRouter(router)], { SERVICE_ADMIN_KEY: KEY }, era),
  ]),
)
