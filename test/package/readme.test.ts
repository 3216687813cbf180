/** The first program of the README, cut from the page: it runs and compiles unchanged. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../adapters/process.js'
import { type Consumer, createConsumer, ROOT, runIn } from './consumer.js'

const TSC = join(ROOT, 'node_modules/.bin/tsc')
const MOST_LINES = 18

describe('the first program of the README', () => {
  let consumer: Consumer
  let program: string
  beforeAll(async () => {
    consumer = await createConsumer()
    const readme = await readFile(join(consumer.dir, 'node_modules/relayscope/README.md'), 'utf8')
    program = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] as string
    await writeFile(join(consumer.dir, 'look.mjs'), program)
    await writeFile(join(consumer.dir, 'look.mts'), program)
  })
  afterAll(() => consumer?.remove())

  it('has eighteen lines', () => {
    expect(program.split('\n').filter((line) => line.trim() !== '')).toHaveLength(MOST_LINES)
  })

  it('shows its client and the dashboard at the address that it prints', async () => {
    const running = await run(process.execPath, [join(consumer.dir, 'look.mjs')], {
      cwd: consumer.dir,
      env: { SERVICE_ADMIN_KEY: '' },
    })
    try {
      const answer = await fetch(`http://127.0.0.1:${running.port}/diagnostics/users`)
      expect(await answer.json()).toMatchObject({ items: [{ user_id: 'ada', observed_connections: 1 }] })
      const page = await fetch(`http://127.0.0.1:${running.port}/dashboard/`)
      expect(await page.text()).toContain('<script')
    } finally {
      await running.close()
    }
  })

  it('compiles in strict TypeScript without the types of Node', async () => {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2023',
      types: [],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
    }
    await writeFile(join(consumer.dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['look.mts'] }))
    const compiled = runIn(consumer, process.execPath, [TSC, '-p', 'tsconfig.json'])
    expect(await compiled.catch((error: { stdout: string }) => error.stdout)).toBe('')
  })
})
