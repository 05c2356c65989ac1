package post

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/notify"
)

// slack posts to an incoming webhook. Whatever came from outside stands in plain text objects, which know no markup, and is escaped as
// Slack asks for, so that no name can mention a channel or hide a link. The only link is ours.
type slack struct {
	url    string
	client *http.Client
	deps   Deps
}

// Send posts the message as blocks.
func (s slack) Send(ctx context.Context, n notify.Note) error {
	ctx, cancel := context.WithTimeout(ctx, s.deps.For)
	defer cancel()
	body, err := json.Marshal(messageOf(n))
	if err != nil {
		return unreached(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return unreached(err)
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("User-Agent", "cutonce/"+s.deps.Version)
	return do(s.client, r)
}

// escaper escapes the three characters that begin markup (docs.slack.dev, "Formatting message text"). The others, of bold, italics and
// code, mean nothing in plain text objects and where markup is turned off.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

type (
	slackMessage struct {
		// Text is what notifications show. It is read without markup.
		Text        string       `json:"text"`
		Markdown    bool         `json:"mrkdwn"`
		LinkNames   bool         `json:"link_names"`
		Parse       string       `json:"parse"`
		UnfurlLinks bool         `json:"unfurl_links"`
		UnfurlMedia bool         `json:"unfurl_media"`
		Blocks      []slackBlock `json:"blocks"`
	}
	slackBlock struct {
		Type     string      `json:"type"`
		Text     *slackText  `json:"text,omitempty"`
		Elements []slackText `json:"elements,omitempty"`
	}
	slackText struct {
		Type string `json:"type"`
		Text string `json:"text"`
		// Emoji is always false: a name may hold :warning: and mean nothing by it. Links do not know it.
		Emoji *bool `json:"emoji,omitempty"`
	}
)

// mostText bounds one block's text; Slack refuses more than 3000 characters, and 150 in a header.
const (
	mostText   = 2900
	mostHeader = 150
)

func messageOf(n notify.Note) slackMessage {
	var lines strings.Builder
	for _, l := range n.Lines {
		lines.WriteString(l.Label + ": " + l.Text + "\n")
	}
	return slackMessage{
		Text: escaper.Replace(n.Subject), Parse: "none",
		Blocks: []slackBlock{
			{Type: "header", Text: plainText(n.Title, mostHeader)},
			{Type: "section", Text: plainText(strings.TrimSuffix(lines.String(), "\n"), mostText)},
			// Of our own making: the address is ours, and so are the words.
			{Type: "section", Text: &slackText{Type: "mrkdwn", Text: "<" + escaper.Replace(n.Link) + "|" + escaper.Replace(n.Act) + ">"}},
			{Type: "context", Elements: []slackText{*plainText(n.Foot, mostText)}},
		},
	}
}

func plainText(text string, most int) *slackText {
	runes := []rune(text)
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return &slackText{Type: "plain_text", Text: escaper.Replace(string(runes)), Emoji: new(bool)}
}
