/** Compares the docs of the tools with the tools. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { noopAuth } from '../../src/index.js'
import { fence } from '../../src/mcp/answer.js'
import { ROOT } from '../repository/imports.js'
import { connectHttp, serve } from './subject.js'

const text = readFileSync(`${ROOT}/docs/mcp.md`, 'utf8')

describe('docs/mcp.md', () => {
  it('has every tool in its order, with what it takes', async () => {
    const { tools } = await (await connectHttp(await serve({ auth: noopAuth() }))).listTools()
    const rows = [...text.matchAll(/^\| `(\w+)` \| (.*?) ?\| .{10,} \|$/gm)]
    expect(
      rows.map(([, name, takes]) => [name, [...(takes as string).matchAll(/`(\w+)`/g)].map(([, each]) => each)]),
    ).toEqual(tools.map(({ name, inputSchema }) => [name, Object.keys(inputSchema.properties ?? {})]))
  })

  it('shows answers as they are given', () => {
    const answers = [...text.matchAll(/```text\n(\w+) (\{.*\})\n\n([\s\S]*?)\n```/g)]
    expect(answers.length).toBeGreaterThan(1)
    for (const [, , given, answer = ''] of answers) {
      expect(() => JSON.parse(given as string)).not.toThrow()
      const lines = answer.split('\n').filter((line) => line.startsWith('{'))
      for (const line of lines) expect(JSON.stringify(JSON.parse(line))).toBe(line)
      expect(answer.endsWith(fence(lines))).toBe(true)
      expect(answer).toMatch(/^[^\n]+\. As of [\dT:.-]+Z\. (?:Complete|NOT COMPLETE: a part, never a total)\.\n/)
    }
  })

  it('names the options of the command that starts them', async () => {
    const { MCP_HELP } = await import('../../src/cli/mcp.js')
    const options = [...MCP_HELP.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, option]) => option as string)
    expect(options.filter((option) => !text.includes(option))).toEqual([])
  })
})
