import { describe, expect, onTestFinished, test } from 'vitest'
import { type Model, type ModelOptions, type Step, script, startModel } from './index.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

interface Said {
  text: string
  think: string
  calls: { id: string; name: string; args: Any }[]
  input: number
  output: number
}

/** How a program talks by one API. */
interface Speaker {
  path(stream: boolean): string
  tools(names: string[]): object
  person(text: string): Any
  model(said: Said): Any
  results(said: Said, texts: string[]): Any[]
  body(messages: Any[], stream: boolean): object
  whole(answer: Any): Said
  streamed(chunks: Any[]): Said
}

const HEADERS = { 'content-type': 'application/json' }

async function open(options?: ModelOptions): Promise<Model> {
  const model = await startModel(options)
  onTestFinished(() => model.close())
  return model
}

const SPEAKERS: Record<string, Speaker> = {
  anthropic: {
    path: () => '/v1/messages?beta=true',
    tools: (names) => ({ tools: names.map((name) => ({ name, input_schema: {} })) }),
    person: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
    model: ({ text, calls }) => ({
      role: 'assistant',
      content: [
        ...(text ? [{ type: 'text', text }] : []),
        ...calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args })),
      ],
    }),
    results: ({ calls }, texts) => [
      { role: 'user', content: calls.map(({ id }, i) => ({ type: 'tool_result', tool_use_id: id, content: texts[i] })) },
    ],
    body: (messages, stream) => ({ model: 'm', messages, stream }),
    whole: ({ content, usage }) => ({
      text: content.map((block: Any) => block.text ?? '').join(''),
      think: content.map((block: Any) => block.thinking ?? '').join(''),
      calls: content.flatMap((block: Any) => (block.type === 'tool_use' ? [{ id: block.id, name: block.name, args: block.input }] : [])),
      input: usage.input_tokens,
      output: usage.output_tokens,
    }),
    streamed(chunks) {
      const blocks: Any[] = []
      for (const { type, index, content_block, delta } of chunks) {
        if (type === 'content_block_start') blocks[index] = { ...content_block, json: '' }
        if (type !== 'content_block_delta') continue
        blocks[index].text = delta.text === undefined ? blocks[index].text : blocks[index].text + delta.text
        if (delta.thinking) blocks[index].thinking += delta.thinking
        if (delta.partial_json) blocks[index].json += delta.partial_json
      }
      const content = blocks.map((block) => (block.type === 'tool_use' ? { ...block, input: JSON.parse(block.json) } : block))
      const [first, last] = [chunks[0].message.usage, chunks.at(-2).usage]
      return this.whole({ content, usage: { ...first, ...last } })
    },
  },
  responses: {
    path: () => '/v1/responses',
    tools: (names) => ({ tools: names.map((name) => ({ type: 'function', name })) }),
    person: (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }),
    model: ({ text, calls }) => [
      ...(text ? [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }] : []),
      ...calls.map(({ id, name, args }) => ({ type: 'function_call', call_id: id, name, arguments: JSON.stringify(args) })),
    ],
    results: ({ calls }, texts) => calls.map(({ id }, i) => ({ type: 'function_call_output', call_id: id, output: texts[i] })),
    body: (messages, stream) => ({ model: 'm', input: messages.flat(), stream }),
    whole: ({ output, usage }) => ({
      text: output
        .flatMap((item: Any) => item.content ?? [])
        .map((part: Any) => part.text)
        .join(''),
      think: output
        .flatMap((item: Any) => item.summary ?? [])
        .map((part: Any) => part.text)
        .join(''),
      calls: output.flatMap((item: Any) =>
        item.type === 'function_call' ? [{ id: item.call_id, name: item.name, args: JSON.parse(item.arguments) }] : [],
      ),
      input: usage.input_tokens,
      output: usage.output_tokens,
    }),
    streamed(chunks) {
      const whole = this.whole(chunks.at(-1).response)
      const done = chunks.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
      expect(done).toEqual(chunks.at(-1).response.output)
      const joined = (type: string) =>
        chunks
          .filter((chunk) => chunk.type === type)
          .map(({ delta }) => delta)
          .join('')
      expect(joined('response.output_text.delta')).toBe(whole.text)
      expect(joined('response.reasoning_summary_text.delta')).toBe(whole.think)
      return whole
    },
  },
  chat: {
    path: () => '/v1/chat/completions',
    tools: (names) => ({ tools: names.map((name) => ({ type: 'function', function: { name } })) }),
    person: (content) => ({ role: 'user', content }),
    model: ({ text, calls }) => ({
      role: 'assistant',
      content: text,
      tool_calls: calls.map(({ id, name, args }) => ({ id, function: { name, arguments: JSON.stringify(args) } })),
    }),
    results: ({ calls }, texts) => calls.map(({ id }, i) => ({ role: 'tool', tool_call_id: id, content: texts[i] })),
    body: (messages, stream) => ({ model: 'm', messages, stream }),
    whole: ({ choices: [{ message }], usage }) => ({
      text: message.content ?? '',
      think: message.reasoning_content ?? '',
      calls: (message.tool_calls ?? []).map((call: Any) => ({
        id: call.id,
        name: call.function.name,
        args: JSON.parse(call.function.arguments),
      })),
      input: usage.prompt_tokens,
      output: usage.completion_tokens,
    }),
    streamed(chunks) {
      expect(chunks.at(-1)).toBe('[DONE]')
      const deltas = chunks.slice(0, -1).flatMap(({ choices }) => choices.map(({ delta }: Any) => delta))
      const message = {
        content: deltas.map(({ content }) => content ?? '').join(''),
        reasoning_content: deltas.map(({ reasoning_content }) => reasoning_content ?? '').join(''),
        tool_calls: deltas.flatMap(({ tool_calls }) => tool_calls ?? []),
      }
      return this.whole({ choices: [{ message }], usage: chunks.at(-2).usage })
    },
  },
  gemini: {
    path: (stream) => `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    tools: (names) => ({ tools: [{ functionDeclarations: names.map((name) => ({ name })) }] }),
    person: (text) => ({ role: 'user', parts: [{ text: '<session_context>\nToday\n</session_context>' }, { text }] }),
    model: ({ text, calls }) => ({
      role: 'model',
      parts: [...(text ? [{ text }] : []), ...calls.map(({ id, name, args }) => ({ functionCall: { id, name, args } }))],
    }),
    results: ({ calls }, texts) => [
      { role: 'user', parts: calls.map(({ id, name }, i) => ({ functionResponse: { id, name, response: { output: texts[i] } } })) },
    ],
    body: (contents) => ({ contents }),
    whole: ({ candidates: [{ content }], usageMetadata }) => ({
      text: content.parts.map((part: Any) => (part.thought ? '' : (part.text ?? ''))).join(''),
      think: content.parts.map((part: Any) => (part.thought ? part.text : '')).join(''),
      calls: content.parts.flatMap(({ functionCall }: Any) => functionCall ?? []),
      input: usageMetadata.promptTokenCount,
      output: usageMetadata.candidatesTokenCount,
    }),
    streamed(chunks) {
      const parts = chunks.flatMap(({ candidates }) => candidates[0].content.parts)
      return this.whole({ ...chunks.at(-1), candidates: [{ content: { parts } }] })
    },
  },
}

/** A program that has our tools, as far as it matters here. */
class Talk {
  readonly messages: Any[] = []
  readonly #speaker: Speaker
  readonly #model: Model
  readonly #stream: boolean
  readonly #names: string[]

  constructor(model: Model, api: string, { stream = true, names = ['Bash', 'Write', 'mcp__signalbox__agent_me'] } = {}) {
    this.#speaker = SPEAKERS[api] as Speaker
    this.#model = model
    this.#stream = stream
    this.#names = names
  }

  post(): Promise<Response> {
    const body = { ...this.#speaker.body(this.messages, this.#stream), ...(this.#names.length ? this.#speaker.tools(this.#names) : {}) }
    const url = `${this.#model.url}${this.#speaker.path(this.#stream)}`
    return fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify(body) })
  }

  /** Asks for the next answer, keeps it, and answers every call by `<its name> did it`. */
  async next(): Promise<Said> {
    const response = await this.post()
    expect(response.status).toBe(200)
    const said = this.#stream ? this.#speaker.streamed(await chunksOf(response)) : this.#speaker.whole(await response.json())
    this.messages.push(this.#speaker.model(said))
    const results = said.calls.map(({ name }) => `${name} did it`)
    if (said.calls.length) this.messages.push(...this.#speaker.results(said, results))
    return said
  }

  person(text: string): this {
    this.messages.push(this.#speaker.person(text))
    return this
  }

  say(text: string): Promise<Said> {
    return this.person(text).next()
  }
}

async function chunksOf(response: Response): Promise<Any[]> {
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
  return lines.map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.slice('data: '.length))))
}

const APIS = Object.keys(SPEAKERS)
const WORK: Step[] = [
  { think: 'Let me see.', say: 'I look, "first".', tool: 'bash', args: { command: 'ls' }, usage: { input: 7, output: 3 } },
  {
    tools: [
      { tool: 'mcp:signalbox.agent_me', args: { of: 'ü @@END' } },
      { tool: 'bash', args: { command: 'echo "{{last}}"' } },
    ],
  },
  { say: 'It says: {{last}}.' },
]

describe.each(APIS)('the scripted model by %s', (api) => {
  test.each([true, false])('[SM1] does what the script says, streamed: %s', async (stream) => {
    const talk = new Talk(await open(), api, { stream })
    const first = await talk.say(`Please do this:\n${script(WORK)}\nThank you.`)
    expect(first).toMatchObject({ text: 'I look, "first".', think: 'Let me see.', input: 7, output: 3 })
    expect(first.calls).toMatchObject([{ name: 'Bash', args: { command: 'ls' } }])
    const second = await talk.next()
    expect(second.calls).toMatchObject([
      { name: 'mcp__signalbox__agent_me', args: { of: 'ü @@END' } },
      { name: 'Bash', args: { command: 'echo "Bash did it"' } },
    ])
    expect(new Set(second.calls.map(({ id }) => id)).size).toBe(2)
    expect(await talk.next()).toMatchObject({ text: 'It says: Bash did it.', calls: [], input: 1200, output: 42 })
  })

  test('[SM2] the newest script counts, and the server remembers nothing', async () => {
    const talk = new Talk(await open(), api)
    await talk.say(script(WORK))
    await talk.next()
    const again = await talk.say(`Another thing. ${script([{ tool: 'bash', args: { command: 'pwd' } }, { say: 'new' }, { say: 'newer' }])}`)
    expect(again.calls).toMatchObject([{ args: { command: 'pwd' } }])
    const elsewhere = new Talk(await open(), api)
    elsewhere.messages.push(...talk.messages)
    expect((await elsewhere.next()).text).toBe('new')
    expect((await elsewhere.say('and?')).text).toBe('newer')
    expect((await elsewhere.say('and?')).text).toBe('The script is over.')
  })

  test('[SM3] a message that comes before the step that listens is heard there', async () => {
    const talk = new Talk(await open(), api)
    const steps: Step[] = [{ tool: 'bash', args: {} }, { listen: true }, { tool: 'bash', args: { command: 'on' } }, { say: 'end' }]
    await talk.say(script(steps))
    const heard = await talk.say('use tabs')
    expect(heard).toMatchObject({ text: 'heard: use tabs', calls: [{ args: { command: 'on' } }] })
    expect((await talk.next()).text).toBe('end')
  })

  test('[SM3] a message that comes later is waited for; one that nobody waits for changes nothing', async () => {
    const talk = new Talk(await open(), api)
    expect((await talk.say(script([{ listen: true }, { say: 'and on' }, { say: 'then' }]))).text).toBe('listening')
    expect((await talk.say('use tabs')).text).toBe('heard: use tabs\nand on')
    expect((await talk.say('go')).text).toBe('then')
    const busy = new Talk(await open(), api)
    await busy.say(script(WORK))
    expect((await busy.say('hurry')).calls).toHaveLength(2)
  })

  test('[SM4] a fault is answered so often, in the words of the API', async () => {
    const model = await open()
    model.fault({ status: 429, times: 2, retryAfter: 7 })
    model.fault({ status: 401, times: 1, body: 'no', headers: { 'x-reset': 'soon' } })
    const talk = new Talk(model, api).person(script([{ say: 'hello' }]))
    for (const _ of [1, 2]) {
      const refused = await talk.post()
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7'])
      expect(((await refused.json()) as Any).error.message).toBe('The scripted model says 429.')
    }
    const refused = await talk.post()
    expect([refused.status, await refused.text(), refused.headers.get('x-reset')]).toEqual([401, 'no', 'soon'])
    expect((await talk.next()).text).toBe('hello')
    expect(model.requests.map((request) => request.api)).toEqual([api, api, api, api])
  })

  test('[SM4] a step that is refused is done after so many times', async () => {
    const talk = new Talk(await open(), api).person(script([{ say: 'hello', error: { status: 529, times: 2 } }]))
    expect([(await talk.post()).status, (await talk.post()).status]).toEqual([529, 529])
    expect((await talk.next()).text).toBe('hello')
  })

  test('[SM5] an answer that is cut breaks off after its beginning', async () => {
    const talk = new Talk(await open(), api).person(script([{ say: 'one two three four', cut: true }]))
    const response = await talk.post()
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect((await reader.read()).value?.length).toBeGreaterThan(10)
    const toTheEnd = async () => {
      while (!(await reader.read()).done);
    }
    await expect(toTheEnd()).rejects.toThrow()
  })

  test('[SM6] titles are given without tools, and JSON of the shape that is wanted', async () => {
    const model = await open()
    expect((await new Talk(model, api, { names: [] }).say(`Name this: ${script(WORK)}`)).text).toBe('A title')
    const talk = new Talk(model, api, { names: [], stream: false }).person('Which?')
    const schema = { type: 'object', properties: { which: { type: 'string', enum: ['flash', 'pro'] }, sure: { type: 'boolean' } } }
    const wanted: Record<string, object> = {
      anthropic: { output_config: { format: { type: 'json_schema', schema } } },
      responses: { text: { format: { type: 'json_schema', schema } } },
      chat: { response_format: { type: 'json_schema', json_schema: { schema } } },
      gemini: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } },
    }
    const speaker = SPEAKERS[api] as Speaker
    const body = JSON.stringify({ ...speaker.body(talk.messages, false), ...wanted[api] })
    const response = await fetch(`${model.url}${speaker.path(false)}`, { method: 'POST', headers: HEADERS, body })
    expect(JSON.parse(speaker.whole(await response.json()).text)).toEqual({ which: 'flash', sure: false })
  })
})

describe('the scripted model', () => {
  test('[SM5] one that never answers holds nobody up at the end, and one that is late is late', async () => {
    const model = await startModel()
    const lost = new Talk(model, 'chat').person(script([{ say: 'never', hang: true }])).post()
    const slow = new Talk(model, 'chat').person(script([{ say: 'never', delayMs: 600_000 }])).post()
    const ends = Promise.allSettled([lost, slow])
    const before = performance.now()
    expect((await new Talk(model, 'chat').say(script([{ say: 'late', delayMs: 120 }]))).text).toBe('late')
    expect(performance.now() - before).toBeGreaterThan(115)
    await model.close()
    expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })

  test('[SM2] a turn that was broken off goes on with the next step when the person speaks', async () => {
    const talk = new Talk(await open(), 'anthropic').person(script([{ hang: true }, { say: 'here again' }]))
    talk.person('[Request interrupted by user]')
    expect((await talk.say('go on')).text).toBe('here again')
  })

  test('[SM2] prompts without a script go by the rules, and a script that cannot be read says so', async () => {
    const model = await open({ rules: [{ match: /review/i, steps: [{ say: 'Fine.' }] }] })
    expect((await new Talk(model, 'chat').say('Please review it.')).text).toBe('Fine.')
    expect((await new Talk(model, 'chat').say('Hello')).text).toBe('No script in: Hello')
    expect((await new Talk(model, 'chat').say('@@SCRIPT [{] @@END')).text).toMatch(/cannot be read: \[\{\]/)
    expect((await new Talk(model, 'chat').say(script([{ say: 'quoted' }]).replaceAll('"', '\\"'))).text).toBe('quoted')
  })

  test('[SM3] what Claude Code folds into its turn is a message like any other', async () => {
    const talk = new Talk(await open(), 'anthropic')
    await talk.say(script([{ tool: 'bash', args: {} }, { listen: true }, { say: 'end' }]))
    const told = 'The user sent a new message while you were working:\nuse\n\ntabs'
    talk.messages.push({ role: 'system', content: `${told}\n\nThis is how Claude Code surfaces messages.` })
    expect((await talk.next()).text).toBe('heard: use\n\ntabs\nend')
  })

  test('[SM6] tokens are counted, models listed, a look is answered; anything else is refused', async () => {
    const { url } = await open()
    const post = (path: string) => fetch(url + path, { method: 'POST', body: '{"messages":[]}' })
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
    expect(await (await post('/v1/messages/count_tokens')).json()).toEqual({ input_tokens: 4 })
    expect(await (await post('/v1beta/models/m:countTokens')).json()).toEqual({ totalTokens: 4 })
    expect(await (await fetch(`${url}/v1/models`)).json()).toMatchObject({ data: [{ id: 'scripted' }] })
    expect((await post('/v1/embeddings')).status).toBe(404)
    for (const body of ['', 'null', '[]', '{"messages":7,"tools":{}}', '{"messages":[{"role":"user","content":{}}]}'])
      expect((await fetch(`${url}/v1/messages`, { method: 'POST', body })).status).toBe(200)
  })

  test.each([
    [
      ['Bash', 'Write', 'mcp__signalbox__agent_me'],
      ['Bash', 'Write', 'mcp__signalbox__agent_me'],
    ],
    [
      ['run_shell_command', 'write_file', 'mcp_signalbox_agent_me'],
      ['run_shell_command', 'write_file', 'mcp_signalbox_agent_me'],
    ],
    [
      ['bash', 'write', 'signalbox_agent_me'],
      ['bash', 'write', 'signalbox_agent_me'],
    ],
    [
      ['shell_command', 'apply_patch'],
      ['shell_command', 'apply_patch', 'mcp__signalbox__agent_me'],
    ],
    [['exec_command'], ['exec_command', 'exec_command', 'mcp__signalbox__agent_me']],
  ])('[SM7] the tools of %j are found', async (names, found) => {
    const tools = [
      { tool: 'bash', args: { command: 'ls' } },
      { tool: 'write', args: { path: 'a', content: 'b\n' } },
    ]
    const talk = new Talk(await open(), 'chat', { names })
    const { calls } = await talk.say(script([{ tools: [...tools, { tool: 'mcp:signalbox.agent_me' }] }]))
    expect(calls.map(({ name }) => name)).toEqual(found)
    expect(JSON.stringify(calls[0]?.args)).toContain('ls')
    expect(JSON.stringify(calls[1]?.args)).toContain('b')
  })

  test('[SM7] Codex gets its tools by namespace, its patch as a text, and a program where it runs programs', async () => {
    const { url } = await open()
    const ask = async (more: { tools?: unknown[]; items?: unknown[] }) => {
      const tools = [{ tool: 'mcp:signalbox.agent_me' }, { tool: 'write', args: { path: 'a', content: 'b' } }]
      const input = [...(more.items ?? []), { role: 'user', content: script([{ tools }]) }]
      const body = JSON.stringify({ model: 'm', input, tools: more.tools ?? [] })
      return ((await (await fetch(`${url}/v1/responses`, { method: 'POST', body })).json()) as Any).output
    }
    const patch = { type: 'custom', name: 'apply_patch' }
    const space = { type: 'namespace', name: 'mcp__signalbox', tools: [{ name: 'agent_me' }] }
    const expected = [
      { type: 'function_call', namespace: 'mcp__signalbox', name: 'agent_me' },
      { type: 'custom_tool_call', name: 'apply_patch', input: expect.stringContaining('*** Add File: a\n+b\n') },
    ]
    expect(await ask({ tools: [patch, space] })).toMatchObject(expected)
    expect(await ask({ tools: [patch] })).toMatchObject(expected)
    const items = [{ type: 'additional_tools', tools: [{ name: 'functions', tools: [{ name: 'exec' }] }] }]
    expect(await ask({ items })).toMatchObject([
      { name: 'exec', input: expect.stringContaining('tools.mcp__signalbox__agent_me({})') },
      { name: 'exec', input: expect.stringContaining('tools.apply_patch("*** Begin Patch') },
    ])
  })
})
