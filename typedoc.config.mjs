import { FACES } from './tools/faces.mjs'

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  entryPoints: Object.values(FACES),
  tsconfig: 'tsconfig.json',
  out: 'docs/api',
  readme: 'none',
  includeVersion: true,
  excludeInternal: true,
  disableSources: true,
  skipErrorChecking: true,
  intentionallyNotExported: ['AnswerShape', 'CountsShape', 'Flat', 'Part', 'WithDefault'],
  validation: { notExported: true, invalidLink: true, notDocumented: false },
  treatWarningsAsErrors: true,
}
