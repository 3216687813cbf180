/** Reads from the sources which members a declaration has: for the tests that hold documents against types. */
import ts from 'typescript'
import { readFiles } from './imports.js'

/** Interfaces of `src` by name; of two with one name that of the contract, which documents mean. */
function interfaces(): Map<string, ts.InterfaceDeclaration> {
  const found = new Map<string, ts.InterfaceDeclaration>()
  const inContract = ({ path }: { path: string }) => Number(/(?:^|\/)contract\//.test(path))
  for (const { path, text } of readFiles('src').sort((a, b) => inContract(a) - inContract(b)))
    for (const node of ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true).statements)
      if (ts.isInterfaceDeclaration(node)) found.set(node.name.text, node)
  return found
}

const DECLARED = interfaces()

function declared(name: string): ts.InterfaceDeclaration {
  const found = DECLARED.get(name)
  if (!found) throw new Error(`no interface ${name}`)
  return found
}

function namesIn(members: ts.NodeArray<ts.TypeElement>, before: string): string[] {
  return members.flatMap((member) => {
    const name = member.name && `${before}${member.name.getText()}`
    if (!name) return []
    const nested = ts.isPropertySignature(member) && member.type
    return nested && ts.isTypeLiteralNode(nested) ? [name, ...namesIn(nested.members, `${name}.`)] : [name]
  })
}

/** The members of an interface and of those that it extends, those of a literal type within it as `outer.inner`. */
export function membersOf(name: string): string[] {
  const node = declared(name)
  const inherited = (node.heritageClauses ?? []).flatMap(({ types }) => types.map(({ expression }) => expression))
  return [...inherited.flatMap((type) => membersOf(type.getText())), ...namesIn(node.members, '')]
}

/** The interfaces that one extends, at any depth, and itself. */
export function lineageOf(name: string): string[] {
  const parents = (DECLARED.get(name)?.heritageClauses ?? []).flatMap(({ types }) =>
    types.map((type) => type.getText()),
  )
  return [name, ...parents.flatMap(lineageOf)]
}

/** The members of an interface that are of a named type, with its name. */
export const typesIn = (name: string): [member: string, type: string][] =>
  declared(name).members.flatMap((member) => {
    const type = ts.isPropertySignature(member) && member.type
    return type && ts.isTypeReferenceNode(type) ? [[member.name.getText(), type.getText()]] : []
  })

/** The methods of an interface. */
export const methodsOf = (name: string): string[] =>
  declared(name)
    .members.filter(ts.isMethodSignature)
    .map((member) => member.name.getText())

/** The words of a type that is a union of them. */
export function wordsOf(name: string): string[] {
  for (const { text } of readFiles('src')) {
    const declaration = new RegExp(`^export type ${name} =((?:\\s*(?://.*)?\\s*\\| '\\w+')+)`, 'm').exec(text)
    if (declaration) return [...(declaration[1] as string).matchAll(/\| '(\w+)'/g)].map(([, word]) => word as string)
  }
  throw new Error(`no union ${name}`)
}
