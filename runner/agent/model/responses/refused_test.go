package responses

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// An answer that fails on its way has no status: its code alone says that another try, or another
// model, is no way out.
func TestAnAnswerThatIsRefusedLeadsNowhere(t *testing.T) {
	for code, kind := range map[string]model.Kind{
		"invalid_prompt": model.Refused, "bio_policy": model.Refused, "image_content_policy_violation": model.Refused, "content_filter": model.Refused, "invalid_image": model.InvalidRequest, "data_residency_mismatch": model.InvalidRequest,
	} {
		reader := &itemReader{}
		_, err := reader.event([]byte(`{"type":"response.failed","response":{"status":"failed","error":{"code":"` + code + `","message":"No."},"output":[]}}`))
		failure, is := errors.AsType[*model.Failure](err)
		if !is || failure.Kind != kind || failure.Temporary() || failure.TryOtherModel() {
			t.Errorf("%s: %v", code, err)
		}
	}
}
